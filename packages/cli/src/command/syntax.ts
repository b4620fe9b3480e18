/** One option of a verb: what parsing, help and completion know about it. */
export interface Option {
  readonly name: string;
  /** One letter that means the same. */
  readonly short?: string;
  /** The placeholder for its value in the help; an option without one is a flag. */
  readonly value?: string;
  readonly isRepeatable?: boolean;
  readonly summary: string;
  readonly default?: string;
  /** The only values it takes. */
  readonly choices?: readonly string[];
  /** Which host paths, or nodes of the cluster, a shell offers for its value. */
  readonly completes?: "path" | "directory" | "node";
}

/** What may follow a verb on its command line. */
export interface Syntax {
  readonly name: string;
  readonly options: readonly Option[];
  /** As a usage line shows them: `SANDBOX`, optional `[CHECKPOINT]`, repeated `SANDBOX…`. */
  readonly operands?: readonly string[];
  /** The only values of the first operand. */
  readonly choices?: readonly string[];
  /** Whether a command to run follows. */
  readonly command?: "required" | "optional";
  /** Everything after the verb belongs to the program that it starts. */
  readonly passesOnArguments?: boolean;
}

/** The option that every verb has. */
export const helpOption: Option = { name: "help", short: "h", summary: "show this help" };

/** How to write a command line, such as `sandpiper ps [OPTIONS] SANDBOX`. */
export function usageOf({ name, options, operands = [], command }: Syntax): string {
  const parts = ["sandpiper", name, ...(options.length > 0 ? ["[OPTIONS]"] : []), ...operands];
  if (command !== undefined) parts.push(command === "required" ? "-- CMD [ARGS…]" : "[-- CMD [ARGS…]]");
  return parts.join(" ");
}

/** How many operands there may be, and what each is called in a message. */
export function operandsOf({ operands = [] }: Syntax) {
  return {
    min: operands.filter((operand) => !operand.startsWith("[")).length,
    max: operands.some((operand) => operand.includes("…")) ? Number.POSITIVE_INFINITY : operands.length,
    names: operands.map((operand) => operand.replace(/[[\]…]/g, "")),
  };
}
