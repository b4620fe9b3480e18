import { type Program, type ProgramContext, programs } from "./program.ts";

interface ShellCommand {
  readonly words: readonly string[];
  /** Runs only when the command before it succeeded. */
  readonly isConditional: boolean;
  readonly stdoutTo: "stdout" | "stderr" | "nowhere";
  readonly stderrTo: "stderr" | "nowhere";
}

const TOKEN =
  /\s*(?:(#[^\n]*)|(&&|;|\n)|(>&2|1>&2|2>\/dev\/null|>\/dev\/null)|((?:'[^']*'|"[^"]*"|[^\s;&|<>()`'"#]+)+))/y;

/** As much of sh as the contract suite uses: lists of simple commands, quotes, variables, a few redirections. */
export function shell(script: string, scriptName = "sh"): Program {
  return async (context) => {
    let status = 0;
    for (const command of parse(script, (name) => variable(name, scriptName, context))) {
      if (command.isConditional && status !== 0) continue;
      const [name = "", ...args] = command.words;
      if (name === "exit") return Number(args[0] ?? status);
      status = await run(name, redirected({ ...context, args }, command));
    }
    return status;
  };
}

async function run(name: string, context: ProgramContext): Promise<number> {
  const complain = (text: string) => context.write("stderr", new TextEncoder().encode(`${name}: ${text}\n`));
  const program = Object.hasOwn(programs, name) ? programs[name] : undefined;
  if (program === undefined) {
    await complain("not found");
    return 127;
  }
  try {
    return await program(context);
  } catch (thrown) {
    await complain(thrown instanceof Error ? thrown.message : String(thrown));
    return 1;
  }
}

function redirected(context: ProgramContext, { stdoutTo, stderrTo }: ShellCommand): ProgramContext {
  const target = { stdout: stdoutTo, stderr: stderrTo };
  return {
    ...context,
    async write(source, bytes) {
      const to = target[source];
      if (to !== "nowhere") await context.write(to, bytes);
    },
  };
}

function* parse(script: string, expand: (name: string) => string): Generator<ShellCommand> {
  let words: string[] = [];
  let isConditional = false;
  let stdoutTo: ShellCommand["stdoutTo"] = "stdout";
  let stderrTo: ShellCommand["stderrTo"] = "stderr";
  const text = `${script.trim()}\n`;
  TOKEN.lastIndex = 0;
  let at = 0;
  while (at < text.length) {
    // Newlines end commands, so blanks are skipped by hand where the pattern would swallow one.
    while (text[at] === " " || text[at] === "\t") at++;
    if (text[at] === "\n") {
      at++;
      if (words.length > 0) yield { words, isConditional, stdoutTo, stderrTo };
      [words, isConditional, stdoutTo, stderrTo] = [[], false, "stdout", "stderr"];
      continue;
    }
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (token === null) throw new Error(`the mock's shell cannot read ${JSON.stringify(text.slice(at, at + 20))}`);
    at = TOKEN.lastIndex;
    const [, comment, separator, redirection, word] = token;
    if (comment !== undefined) continue;
    if (word !== undefined) words.push(unquote(word, expand));
    else if (redirection !== undefined) {
      if (redirection.startsWith("2")) stderrTo = "nowhere";
      else stdoutTo = redirection.endsWith("null") ? "nowhere" : "stderr";
    } else {
      if (words.length > 0) yield { words, isConditional, stdoutTo, stderrTo };
      [words, isConditional, stdoutTo, stderrTo] = [[], separator === "&&", "stdout", "stderr"];
    }
  }
}

function unquote(word: string, expand: (name: string) => string): string {
  return word.replaceAll(/'([^']*)'|"([^"]*)"|([^'"]+)/g, (_, single, double, bare) =>
    single === undefined ? expandAll(double ?? bare, expand) : single,
  );
}

function expandAll(text: string, expand: (name: string) => string): string {
  return text.replaceAll(/\$([A-Za-z_][A-Za-z0-9_]*|[$0])/g, (_, name: string) => expand(name));
}

function variable(name: string, scriptName: string, context: ProgramContext): string {
  if (name === "$") return String(context.pid);
  if (name === "0") return scriptName;
  return context.env[name] ?? "";
}
