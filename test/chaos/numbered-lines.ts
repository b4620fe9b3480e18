/** The file of a sandbox into which lines are appended. */
export const LINES_FILE = "lines";

/**
 * A shell command. On a full disk a line can be torn: its head has found room, its end has not, and the call fails. So each begins a
 * line of its own and says where it ends, or the next one would be read as the end of a torn one, as on any POSIX file system.
 */
export function appendLine(line: number): string {
  return `printf '\\n%d;\\n' ${line} >> ${LINES_FILE} && sync ${LINES_FILE}`;
}

/** The numbers of the lines that are whole. */
export function readLines(text: string): number[] {
  return [...text.matchAll(/^(\d+);$/gm)].map(([, line]) => Number(line));
}
