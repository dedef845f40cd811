# The targets of cmake/dependencies.cmake when macOS is compiled for on Linux (cmake/macos.cmake). Headers are those of this
# system's packages; programs are linked with stubs (tools/macos/make_stubs.py), which name the libraries where macOS and
# Homebrew keep them. fmt and Boost.JSON are C++ libraries, whose names depend on the standard library, so they are compiled.
set(stubs ${LOCKSTEP_MACOS_STUBS})
find_package(Threads REQUIRED)

function(stub_library name)  # stub_library(TARGET [STUB]...)
  add_library(${name} INTERFACE IMPORTED)
  target_include_directories(${name} SYSTEM INTERFACE ${stubs}/include)
  foreach(stub ${ARGN})
    target_link_libraries(${name} INTERFACE ${stubs}/${LOCKSTEP_MACOS_ARCHITECTURE}/${stub}.tbd)
  endforeach()
endfunction()

stub_library(OpenSSL::Crypto libcrypto.3)
stub_library(OpenSSL::SSL libssl.3)
target_link_libraries(OpenSSL::SSL INTERFACE OpenSSL::Crypto)
stub_library(CURL::libcurl libcurl.4)
stub_library(PkgConfig::pcre2 libpcre2-8.0)
stub_library(PkgConfig::utf8proc libutf8proc.3)
stub_library(lockstep_libedit libedit.3)
stub_library(CLI11::CLI11)
stub_library(Boost::headers)
stub_library(doctest::doctest)
stub_library(fmt::fmt)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/boost_json.cc CONTENT "#include <boost/json/src.hpp>\n" @ONLY)
add_library(lockstep_boost_json STATIC ${CMAKE_BINARY_DIR}/boost_json.cc)
target_link_libraries(lockstep_boost_json PUBLIC Boost::headers)
add_library(Boost::json ALIAS lockstep_boost_json)
