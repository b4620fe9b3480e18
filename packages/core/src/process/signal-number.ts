const signals = [
  ..."HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT".split(" "),
  ..."CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(" "),
];

/** The number that Linux gives a signal such as "SIGKILL" or "SIG40"; 0 for an unknown signal. */
export function signalNumber(name: string): number {
  const short = name.replace(/^SIG/, "");
  const known = signals.indexOf(short) + 1;
  return known > 0 ? known : /^\d{1,2}$/.test(short) ? Number(short) : 0;
}
