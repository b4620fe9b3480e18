/** Says something on standard error that is not the command's own. */
export function notice(message: string): void {
  process.stderr.write(`sandpiper: ${message}\n`);
}

/** What `--quiet` says instead. */
export function silence(): void {}
