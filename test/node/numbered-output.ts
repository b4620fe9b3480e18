import type { Process } from "@sandpiper/sdk";

/** A shell command that prints the numbers from 1 to `last`, slowly enough to be interrupted. */
export const countTo = (last: number) => `i=0; while [ $i -lt ${last} ]; do i=$((i+1)); echo $i; sleep 0.02; done`;

/** The output of `countTo`, to compare with. */
export const numbersTo = (last: number) => Array.from({ length: last }, (_, at) => `${at + 1}\n`).join("");

/** The expected output of a counting program that ends with `total N`. */
export function undisturbed(text: string): string {
  const total = Number(/total (\d+)\n$/.exec(text)?.[1]);
  return `${numbersTo(total)}total ${total}\n`;
}

/** Reads a process's output in the background: `text()` is what has arrived so far, `ended` resolves with all of it. */
export function collectOutput({ stdout }: Process) {
  let text = "";
  const ended = (async () => {
    for await (const bytes of stdout) text += Buffer.from(bytes).toString();
    return text;
  })();
  // A test that fails before it awaits this must not fail with an unhandled rejection as well.
  ended.catch(() => {});
  return { ended, text: () => text, lines: () => text.split("\n").length - 1 };
}
