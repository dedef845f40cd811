# The same sources, compiler and packages give the same bytes, whatever the folder and the day (tools/reproducible.sh).
# Neither __DATE__ nor __TIME__ is used; file(GLOB) sorts; packages take the day of SOURCE_DATE_EPOCH (tools/package.sh).
include(CheckCXXCompilerFlag)

# No folder of the build machine in __FILE__ or in debug information.
check_cxx_compiler_flag(-ffile-prefix-map=/a=/b LOCKSTEP_HAS_FILE_PREFIX_MAP)
if(LOCKSTEP_HAS_FILE_PREFIX_MAP)
  target_compile_options(lockstep_options INTERFACE
    -ffile-prefix-map=${CMAKE_BINARY_DIR}=build -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
endif()

# D: archives without their members' time, owner and mode.
execute_process(COMMAND ${CMAKE_AR} --version OUTPUT_VARIABLE ar_version ERROR_QUIET)
if(ar_version MATCHES "GNU|LLVM")
  foreach(language C CXX)
    set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>")
    set(CMAKE_${language}_ARCHIVE_APPEND "<CMAKE_AR> qD <TARGET> <LINK_FLAGS> <OBJECTS>")
    set(CMAKE_${language}_ARCHIVE_FINISH "<CMAKE_RANLIB> -D <TARGET>")
  endforeach()
endif()
