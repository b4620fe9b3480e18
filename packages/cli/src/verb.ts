import type { Arguments } from "./arguments.ts";
import type { Option } from "./option.ts";

/** One `sandpiper <verb>`. */
export interface Verb {
  readonly name: string;
  /** What follows the verb on its command line. */
  readonly usage: string;
  readonly summary: string;
  /** More than the summary says: rules, exit codes, examples. */
  readonly details?: string;
  readonly options: readonly Option[];
  /** The words it may be given; absent when it takes a command to run, empty when it takes none. */
  readonly words?: readonly string[];
  /** Returns the exit code of the program. */
  run(arguments_: Arguments): Promise<number>;
}
