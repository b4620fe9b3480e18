/** A step of a script. Scripts are flat, with jumps for loops, so that a position is a number. */
export type Step = CommandStep | JumpStep;

export interface CommandStep {
  readonly kind: "command";
  /** As written, with their quotes. */
  readonly words: readonly string[];
  /** Runs only when the previous command succeeded. */
  readonly isConditional: boolean;
  readonly stdoutTo: Target;
  readonly stderrTo: Target;
}

export interface JumpStep {
  readonly kind: "jump";
  readonly to: number;
  /** Runs only when the previous command failed: the end of a loop. */
  readonly isConditional: boolean;
}

export type Target = "stdout" | "stderr" | { readonly path: string; readonly isAppended: boolean };

const TOKEN =
  /[ \t]*(?:(#[^\n]*)|(&&|;|\n)|(1?>&2)|(2>|1?>>|1?>)[ \t]*|((?:\$\(\([^()]*\)\)|'[^']*'|"[^"]*"|[^\s;&|<>()`'"#])+))/y;

interface Loop {
  readonly start: number;
  /** The step after the loop. */
  exit: number;
}

/** The subset of sh that the contract suite uses: lists of simple commands, while loops, a few redirections. */
export function parseScript(script: string): readonly Step[] {
  const steps: Step[] = [];
  const loops: Loop[] = [];
  let command: CommandStep = newCommand(false);
  let fileOperator: string | undefined;
  const finish = (isNextConditional: boolean) => {
    if (command.words.length > 0) steps.push(command);
    // A line that ends in && continues in the next.
    command = newCommand(isNextConditional || (command.words.length === 0 && command.isConditional));
  };
  for (const { separator, merge, file, word } of tokens(`${script.trim()}\n`)) {
    if (separator !== undefined) finish(separator === "&&");
    else if (merge !== undefined) command = { ...command, stdoutTo: "stderr" };
    else if (file !== undefined) fileOperator = file;
    else if (word !== undefined && fileOperator !== undefined) {
      const target = { path: word, isAppended: fileOperator.endsWith(">>") };
      command = { ...command, [fileOperator === "2>" ? "stderrTo" : "stdoutTo"]: target };
      fileOperator = undefined;
    } else if (word !== undefined && command.words.length === 0 && isKeyword(word)) addKeyword(word, steps, loops);
    else if (word !== undefined) command = { ...command, words: [...command.words, word] };
  }
  if (loops.length > 0) throw new Error("a loop has no end");
  return steps;
}

function* tokens(text: string) {
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (token === null) throw new Error(`the mock's shell cannot read ${JSON.stringify(text.slice(at, at + 20))}`);
    at = TOKEN.lastIndex;
    const [, , separator, merge, file, word] = token;
    yield { separator, merge, file, word };
  }
}

function newCommand(isConditional: boolean): CommandStep {
  return { kind: "command", words: [], isConditional, stdoutTo: "stdout", stderrTo: "stderr" };
}

type Keyword = "while" | "do" | "done";

function isKeyword(word: string): word is Keyword {
  return word === "while" || word === "do" || word === "done";
}

function addKeyword(keyword: Keyword, steps: Step[], loops: Loop[]): void {
  if (keyword === "while") {
    loops.push({ start: steps.length, exit: 0 });
    return;
  }
  const loop = keyword === "do" ? loops.at(-1) : loops.pop();
  if (loop === undefined) throw new Error(`${keyword} outside of a loop`);
  if (keyword === "do") {
    loop.exit = steps.length;
    steps.push({ kind: "jump", to: 0, isConditional: true });
  } else {
    steps.push({ kind: "jump", to: loop.start, isConditional: false });
    steps[loop.exit] = { kind: "jump", to: steps.length, isConditional: true };
  }
}
