# The web page, compiled by Node (web/build.mjs) and built into the program (src/server/page). Nothing is downloaded here:
# tools/page_packages.sh installs web/node_modules, and tools/build.sh calls it. Where Node, those or Python are missing, the
# program is built with the plain page, and says so once. The page has no machine code, so that a cross build uses the
# Node of the building machine.
set(LOCKSTEP_PAGE AUTO CACHE STRING "build the web page into the program: ON (else an error), OFF, or AUTO, if that is possible")
set(LOCKSTEP_NODE_VERSION_MIN 18)
set(LOCKSTEP_PAGE_FILES "" CACHE PATH "a finished page (index.html and assets/) to build in, instead of compiling web/")

# Sets `missing` to the reason why there can be no page.
function(lockstep_find_page_tools)
  set(missing "" PARENT_SCOPE)
  if(LOCKSTEP_PAGE STREQUAL OFF)
    set(missing "LOCKSTEP_PAGE is OFF" PARENT_SCOPE)
    return()
  endif()
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(NOT Python3_FOUND)
    set(missing "Python 3 is missing" PARENT_SCOPE)
    return()
  endif()
  set(Python3_EXECUTABLE ${Python3_EXECUTABLE} PARENT_SCOPE)
  if(LOCKSTEP_PAGE_FILES)
    return()
  endif()
  find_program(LOCKSTEP_NODE NAMES node nodejs)
  if(NOT LOCKSTEP_NODE)
    set(missing "Node is missing" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${LOCKSTEP_NODE} --version OUTPUT_VARIABLE version ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "^v" "" version "${version}")
  if(NOT version VERSION_GREATER_EQUAL LOCKSTEP_NODE_VERSION_MIN)
    set(missing "Node is version ${version}, and ${LOCKSTEP_NODE_VERSION_MIN} is needed" PARENT_SCOPE)
  elseif(NOT EXISTS ${CMAKE_SOURCE_DIR}/web/build.mjs)
    set(missing "web/build.mjs is missing" PARENT_SCOPE)
  elseif(NOT EXISTS ${CMAKE_SOURCE_DIR}/web/node_modules/.package-lock.json)  # npm writes it last
    set(missing "web/node_modules is missing, which `make page` installs" PARENT_SCOPE)
  endif()
endfunction()

lockstep_find_page_tools()
set(LOCKSTEP_PAGE_SOURCE ${CMAKE_BINARY_DIR}/page/built_in_page.cc)
set(embedder ${CMAKE_SOURCE_DIR}/tools/embed_page.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/node_modules/.package-lock.json)
if(missing)
  if(LOCKSTEP_PAGE STREQUAL ON)
    message(FATAL_ERROR "The page cannot be built: ${missing}.")
  endif()
  message(STATUS "The plain page is built in: ${missing}.")
  set(LOCKSTEP_HAS_PAGE OFF CACHE INTERNAL "")
  file(CONFIGURE OUTPUT ${LOCKSTEP_PAGE_SOURCE} @ONLY CONTENT
    "#include \"server/page/built_in_page.h\"\n\nlockstep::PageFiles lockstep::built_in_page() {\n  return {};\n}\n")
  return()
endif()

set(LOCKSTEP_HAS_PAGE ON CACHE INTERNAL "")
if(LOCKSTEP_PAGE_FILES)
  message(STATUS "The page of ${LOCKSTEP_PAGE_FILES} is built in.")
  file(GLOB_RECURSE page_inputs CONFIGURE_DEPENDS ${LOCKSTEP_PAGE_FILES}/*)
  set(page_folder ${LOCKSTEP_PAGE_FILES})
  set(compile "")
else()
  message(STATUS "The page is compiled by ${LOCKSTEP_NODE} and built in.")
  file(GLOB_RECURSE page_inputs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
  list(APPEND page_inputs ${CMAKE_SOURCE_DIR}/web/build.mjs ${CMAKE_SOURCE_DIR}/web/package-lock.json
    ${CMAKE_SOURCE_DIR}/web/node_modules/.package-lock.json)
  set(page_folder ${CMAKE_BINARY_DIR}/page/files)
  set(LOCKSTEP_PAGE_LICENSES ${CMAKE_BINARY_DIR}/page/page-licenses.txt)
  set(parts ${CMAKE_SOURCE_DIR}/tools/page_parts.py)
  set(compile
    COMMAND ${LOCKSTEP_NODE} ${CMAKE_SOURCE_DIR}/web/build.mjs ${page_folder}
    COMMAND ${Python3_EXECUTABLE} -B ${parts} ${CMAKE_SOURCE_DIR}/web ${LOCKSTEP_PAGE_LICENSES})
  list(APPEND page_inputs ${parts})
endif()
add_custom_command(OUTPUT ${LOCKSTEP_PAGE_SOURCE} ${LOCKSTEP_PAGE_LICENSES}
  ${compile}
  COMMAND ${Python3_EXECUTABLE} -B ${embedder} ${page_folder} ${LOCKSTEP_PAGE_SOURCE}
  DEPENDS ${page_inputs} ${embedder}
  COMMENT "The web page" VERBATIM)
# The library is described in another folder, where only this target knows how the file is made.
add_custom_target(lockstep_page DEPENDS ${LOCKSTEP_PAGE_SOURCE})
