/** Who in this program has which instance, by its directory: also two providers of one program must not have the same. */
const holders = new Map<string, object>();

export function holdInstance(directory: string, holder: object): void {
  holders.set(directory, holder);
}

/** Only by who holds it. */
export function releaseInstance(directory: string, holder: object): void {
  if (holders.get(directory) === holder) holders.delete(directory);
}

export function isInstanceHeld(directory: string): boolean {
  return holders.has(directory);
}
