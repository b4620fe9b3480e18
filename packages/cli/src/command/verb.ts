import type { Arguments } from "./arguments.ts";
import type { Option } from "./option.ts";

export interface Operands {
  readonly min: number;
  readonly max: number;
  /** What to write when there are too few. */
  readonly example: string;
  /** A command to run follows them. */
  readonly takesCommand?: boolean;
}

/** One `sandpiper <verb>`. */
export interface Verb {
  readonly name: string;
  /** What follows the verb on its command line. */
  readonly usage: string;
  readonly summary: string;
  /** More than the summary says: rules, exit codes, examples. */
  readonly details?: string;
  readonly options: readonly Option[];
  /** The words it may be given; absent when it takes a command to run or operands, empty when it takes none. */
  readonly words?: readonly string[];
  /** What it is about, such as sandboxes; options may stand before, between and after them. */
  readonly operands?: Operands;
  /** Its operands may be paths of this machine. */
  readonly completesPaths?: boolean;
  /** Its own verbs, the first word after it; `run` is then never called. */
  readonly actions?: readonly Verb[];
  /** Its exit code is that of the command it runs, so Sandpiper's own failures need one that commands do not use. */
  readonly endsLikeItsCommand?: boolean;
  /** Everything after it belongs to the program that it starts. */
  readonly passesOnArguments?: boolean;
  /** Returns the exit code of the program. */
  run(arguments_: Arguments): Promise<number>;
}
