# Builds lockstep from its sources. tools/homebrew_formula.sh fills in the address of the archive and its SHA-256:
#   make homebrew-formula
#   brew tap-new --no-git lockstep/local
#   cp build/release/packages/lockstep.rb "$(brew --repository lockstep/local)/Formula/"
#   brew install lockstep/local/lockstep
# Nobody has run it on a Mac yet.
class Lockstep < Formula
  desc "One LLM server made of the machines you own"
  url "@URL@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "glslang" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "vulkan-headers" => :build
  depends_on "boost"
  depends_on "fmt"
  depends_on macos: :sequoia
  depends_on "molten-vk"
  depends_on "openssl@3"
  depends_on "pcre2"
  depends_on "utf8proc"
  uses_from_macos "curl"
  uses_from_macos "libedit"

  def install
    args = %W[
      -G Ninja
      -DLOCKSTEP_TESTS=OFF
      -DOPENSSL_ROOT_DIR=#{Formula["openssl@3"].opt_prefix}
    ]
    system "cmake", "-S", ".", "-B", "build", *args, *std_cmake_args
    system "cmake", "--build", "build", "--target", "lockstep"
    system "cmake", "--install", "build"
  end

  # `brew services start lockstep`: at login; with sudo: at each start of the machine, then as root. For a user of its own:
  # share/doc/lockstep/examples/launchd/lockstep-daemon.plist.
  service do
    run [opt_bin/"lockstep", "serve"]
    keep_alive successful_exit: false
    process_type :interactive
    log_path var/"log/lockstep.log"
    error_log_path var/"log/lockstep.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lockstep --version")
    model = pkgshare/"models/stories260K"
    assert_match "there was", shell_output("#{bin}/lockstep run #{model} 'Once upon a time' --raw --max-tokens 8 --local")
  end
end
