const signals = [
  ..."HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT".split(" "),
  ..."CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(" "),
];
const FIRST_REALTIME_SIGNAL = 34;

/** The number that Linux gives a signal such as "SIGKILL", "SIGRTMIN+2" or "SIG40"; 0 when there is no such signal. */
export function signalNumber(name: string): number {
  const short = name.replace(/^SIG/, "");
  const known = signals.indexOf(short) + 1;
  if (known > 0) return known;
  const match = /^(RTMIN\+?)?(\d{0,2})$/.exec(short);
  if (match === null || short === "") return 0;
  return Number(match[2] || "0") + (match[1] === undefined ? 0 : FIRST_REALTIME_SIGNAL);
}
