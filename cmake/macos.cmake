# A toolchain file: macOS on Apple silicon or Intel, compiled on Linux (tools/test_macos.sh, docs/testing.md). The compiler is Zig's
# clang; the libraries are headers of this system and stubs of what its shared libraries export.
# LOCKSTEP_MACOS_ARCHITECTURE is arm64 or x86_64. The oldest macOS that is meant is 15.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LOCKSTEP_MACOS_ARCHITECTURE)
if(LOCKSTEP_MACOS_ARCHITECTURE STREQUAL "arm64")
  set(CMAKE_SYSTEM_PROCESSOR arm64)
  set(target aarch64-macos.15.0)
elseif(LOCKSTEP_MACOS_ARCHITECTURE STREQUAL "x86_64")
  set(CMAKE_SYSTEM_PROCESSOR x86_64)
  set(target x86_64-macos.15.0)
else()
  message(FATAL_ERROR "LOCKSTEP_MACOS_ARCHITECTURE is \"${LOCKSTEP_MACOS_ARCHITECTURE}\"; set it to arm64 or x86_64")
endif()
set(LOCKSTEP_MACOS_STUBS ${CMAKE_CURRENT_LIST_DIR}/../build/macos/stubs)

set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/bin/clang)
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/bin/clang++)
set(CMAKE_C_COMPILER_ARG1 "-target ${target}")
set(CMAKE_CXX_COMPILER_ARG1 "-target ${target}")
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/bin/ranlib CACHE FILEPATH "")
set(CMAKE_INSTALL_NAME_TOOL "install_name_tool" CACHE STRING "nothing is installed from here")

# The program is linked with macOS's own libc++, not with the static one that Zig would build.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostdlib++")
set(CMAKE_CXX_STANDARD_LIBRARIES "${LOCKSTEP_MACOS_STUBS}/${LOCKSTEP_MACOS_ARCHITECTURE}/libc++.1.tbd")
if(LOCKSTEP_MACOS_ARCHITECTURE STREQUAL "x86_64")
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${LOCKSTEP_MACOS_STUBS}/x86_64/cpu_model.o")
endif()
# No linker of Linux.
foreach(linker MOLD LLD GOLD)
  set(LOCKSTEP_HAS_${linker} OFF CACHE BOOL "")
endforeach()
