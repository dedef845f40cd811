# lockstep_unity(LIST NAME BATCH): in the place of the sources in LIST, files that include BATCH of them each. The more are compiled
# together, the less often headers are read and templates instantiated, and the longer the build of one changed file takes; the
# preset dev compiles every file alone. The sources are named from the current folder, with which they are compiled as -I.
# CMake's own UNITY_BUILD includes them by whole paths, so that a compiler cache finds nothing that was compiled in another
# checkout.
function(lockstep_unity list name batch_size)
  if(NOT LOCKSTEP_UNITY)
    return()
  endif()
  set(files "")
  list(LENGTH ${list} count)
  foreach(begin RANGE 0 ${count} ${batch_size})
    if(begin EQUAL count)
      break()
    endif()
    list(SUBLIST ${list} ${begin} ${batch_size} batch)
    list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN batch "" content)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}_${begin}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${content}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set(${list} ${files} PARENT_SCOPE)
endfunction()
