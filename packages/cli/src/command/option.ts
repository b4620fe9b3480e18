/** One option of a verb: what parsing, help and completion know about it. */
export interface Option {
  readonly name: string;
  /** One letter that means the same. */
  readonly short?: string;
  /** What stands for its value in the help; an option without one is a flag. */
  readonly value?: string;
  readonly isRepeatable?: boolean;
  readonly summary: string;
  /** The only values it takes. */
  readonly choices?: readonly string[];
  /** Which host paths a shell offers for its value. */
  readonly completes?: "path" | "directory";
}
