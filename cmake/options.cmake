# One answer (docs/internals/one-answer.md): no contraction and no reassociation, in every file and configuration.
add_library(lockstep_options INTERFACE)
target_compile_options(lockstep_options INTERFACE
  -ffp-contract=off -fno-fast-math -Wall -Wextra -Wno-missing-field-initializers
  $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>
  # g++ 12 mistakes "text" + std::string for an overlapping copy at -O3 (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>)
# ccache requires this of compilers before it caches objects that used a precompiled header.
target_compile_options(lockstep_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
  "$<$<CXX_COMPILER_ID:Clang,AppleClang>:SHELL:-Xclang -fno-pch-timestamp>")
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_options INTERFACE
    -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(LOCKSTEP_SANITIZE STREQUAL "thread")
    # The thread sanitizer does not understand fences; we use none, and Asio's are next to its own
    # locks.
    target_compile_options(lockstep_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()
if(LOCKSTEP_FUZZ)
  target_compile_options(lockstep_options INTERFACE -fsanitize=fuzzer-no-link)  # coverage of our libraries
endif()

# The fastest of the installed linkers: a build links 130 programs and libraries.
include(CheckLinkerFlag)
foreach(linker mold lld gold)
  string(TOUPPER LOCKSTEP_HAS_${linker} has_linker)
  check_linker_flag(CXX -fuse-ld=${linker} ${has_linker})
  if(${has_linker})
    target_link_options(lockstep_options INTERFACE -fuse-ld=${linker})
    set(lockstep_linker -fuse-ld=${linker})
    break()
  endif()
endforeach()

# With precompiled headers g++ 12 warns about its own mistakes in "text" + std::string (GCC bug 105651). In files that
# are compiled together it takes each for a header, in which a type in an anonymous namespace would be a mistake.
set(lockstep_headers_warnings
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds;-Wno-subobject-linkage>")
