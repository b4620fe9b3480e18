import type { Arguments } from "./arguments.ts";
import type { Syntax } from "./syntax.ts";

/** Every verb, loaded only when it is used. */
export type VerbTable = Readonly<Record<string, () => Promise<Verb>>>;

/** One `sandpiper VERB`. */
export interface Verb extends Syntax {
  /** An imperative, such as `list sandboxes`. */
  readonly summary: string;
  /** Paragraphs below the summary, which the help wraps. */
  readonly details?: string;
  readonly exitCodes?: readonly (readonly [code: string, meaning: string])[];
  /** Command lines, printed as they are. */
  readonly examples?: readonly string[];
  /** The document to read on in. */
  readonly learnMore?: string;
  /** Its operands may be paths of this machine. */
  readonly completesPaths?: boolean;
  /** Its own verbs, the first word after it; it then has no `run`. */
  readonly actions?: readonly Verb[];
  /** Its exit code is that of the command it runs, so Sandpiper's own failures need one that commands do not use. */
  readonly endsLikeItsCommand?: boolean;
  /** Returns the exit code of the program; without one it is 0. */
  run?(arguments_: Arguments): Promise<number | undefined>;
}
