# Flags that make a memory error end the program instead of serving an attacker. Each flag is tried: those that a
# compiler, a linker or a processor lacks are left out. tests/hardening reads the program's ELF headers and finds missing
# ones. The sanitizers detect the same errors and replace the functions that _FORTIFY_SOURCE checks, so they are built
# without it.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)

# harden(FLAG [CONDITION]): compile with FLAG where the compiler has it; CONDITION is a generator expression.
function(harden flag)
  string(MAKE_C_IDENTIFIER "LOCKSTEP_HAS${flag}" has_flag)
  check_cxx_compiler_flag("-Werror ${flag}" ${has_flag})
  if(${has_flag})
    set(condition 1)
    if(ARGC GREATER 1)
      set(condition ${ARGV1})
    endif()
    target_compile_options(lockstep_options INTERFACE $<${condition}:${flag}>)
  endif()
endfunction()

function(harden_link flag)
  string(MAKE_C_IDENTIFIER "LOCKSTEP_HAS${flag}" has_flag)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${lockstep_linker})  # of cmake/options.cmake
  check_linker_flag(CXX ${flag} ${has_flag})
  if(${has_flag})
    target_link_options(lockstep_options INTERFACE ${flag})
  endif()
endfunction()

# Kernels stay within bounds that their callers have checked: no assertions, and no zeroing of buffers that the next
# line fills. Nothing here touches arithmetic, so an answer has the same bits with and without.
define_property(TARGET PROPERTY LOCKSTEP_IS_KERNELS BRIEF_DOCS "compiled without checks of indices")
set(is_no_kernel $<NOT:$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_IS_KERNELS>>>)

target_compile_definitions(lockstep_options INTERFACE $<${is_no_kernel}:_GLIBCXX_ASSERTIONS>)
if(NOT LOCKSTEP_SANITIZE)
  # -fPIE rather than CMake's POSITION_INDEPENDENT_CODE, which compiles static libraries with -fPIC: such code can be
  # interposed at load time, and is therefore not inlined.
  set(is_of_program $<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>>)
  harden(-fPIE ${is_of_program})
  harden(-fstack-protector-strong)
  harden(-fstack-clash-protection)
  harden(-fcf-protection=full)          # x86-64
  harden(-mbranch-protection=standard)  # AArch64
  harden(-ftrivial-auto-var-init=zero ${is_no_kernel})
  # This needs optimisation. The distribution's own value is undefined first: redefining it is a
  # warning.
  check_cxx_source_compiles("
    #include <features.h>
    #if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 34) || (!defined(__clang__) && __GNUC__ < 12)
    #error
    #endif
    int main() {}" LOCKSTEP_HAS_FORTIFY_3)
  set(fortify 2)
  if(LOCKSTEP_HAS_FORTIFY_3)
    set(fortify 3)
  endif()
  target_compile_options(lockstep_options INTERFACE
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify}>")
  if(NOT APPLE)  # whose linker does all of this by default
    target_link_options(lockstep_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
    harden_link(-Wl,-z,relro)
    harden_link(-Wl,-z,now)
    harden_link(-Wl,-z,noexecstack)
    if(LOCKSTEP_HAS_fcf_protection_full)
      # Linkers mark a program for shadow stacks if all objects are marked. Those of Debian's C library that start a
      # program (Scrt1.o, crti.o) are not, but they only call and return, which is all that shadow stacks require. They
      # also prevent the mark of indirect branch tracking: nothing in them begins with ENDBR64.
      harden_link(-Wl,-z,shstk)
    endif()
  endif()
endif()
