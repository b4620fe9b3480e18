/** The file in a sandbox that receives the lines. */
export const LINES_FILE = "lines";

/**
 * A shell command that appends a line. On a full disk the call can fail after it has written part of the line, so each
 * line starts with a newline and ends with a semicolon: the next one is not mistaken for the rest of a torn line.
 */
export function appendLine(line: number): string {
  return `printf '\\n%d;\\n' ${line} >> ${LINES_FILE} && sync ${LINES_FILE}`;
}

/** The numbers of the complete lines. */
export function readLines(text: string): number[] {
  return [...text.matchAll(/^(\d+);$/gm)].map(([, line]) => Number(line));
}
