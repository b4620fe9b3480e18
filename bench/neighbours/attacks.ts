/** What the owner of the hostile sandbox does meanwhile. */
type Company =
  /** Only starts the attack. */
  | "none"
  /** Keeps running commands, which reopen a channel that the node has closed. */
  | "execs"
  /** Reads everything from ten terminals. */
  | "terminals"
  /** Watches the directory that changes. */
  | "watch";

export interface Attack {
  readonly name: string;
  /** Arguments of guest/attack.c, or a whole command. */
  readonly args: readonly string[];
  readonly company: Company;
}

/** A valid answer to a call that has ended: it does not count as a fault. */
const STRAY = JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} });
const NESTED = `{"jsonrpc":"2.0","id":1,"result":{"a":${"[".repeat(5000)}${"]".repeat(5000)}}}`;

export const ATTACKS: readonly Attack[] = [
  { name: "100 % CPU", args: ["cpu"], company: "none" },
  { name: "a fork bomb", args: ["fork"], company: "none" },
  { name: "a disk filler", args: ["disk"], company: "none" },
  { name: "a memory hog", args: ["memory"], company: "none" },
  { name: "a writer of millions of files", args: ["files"], company: "none" },
  { name: "a flood of blank lines", args: ["flood", ""], company: "execs" },
  { name: "a flood of stray frames", args: ["flood", STRAY], company: "execs" },
  { name: "a flood of nested JSON", args: ["flood", NESTED], company: "execs" },
  { name: "yes in ten terminals", args: ["yes"], company: "terminals" },
  { name: "a watch storm", args: ["touch"], company: "watch" },
];

/** The path of guest/attack.c in the hostile sandbox. */
export const ATTACK_PROGRAM = "/tmp/attack";
