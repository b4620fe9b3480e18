/** Whether an error of the system has one of the codes, such as "ENOENT". */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
