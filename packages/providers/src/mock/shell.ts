import { beginNextStep, type Program, type ProgramContext, programs } from "./program.ts";
import { type CommandStep, type JumpStep, parseScript, type Target } from "./script.ts";

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;

/** The shell of mock sandboxes. */
export const SHELL = "/bin/sh";

/** Runs its input as a script, once the input has ended. */
export const shellOfInput: Program = async (context) => {
  const decoder = new TextDecoder();
  let script = "";
  for (let input = await context.read(); input !== undefined; input = await context.read()) {
    script += decoder.decode(input, { stream: true });
  }
  return await shell(script, SHELL)(context);
};

export function shell(script: string, scriptName: string): Program {
  return async (context) => {
    const steps = parseScript(script);
    const { progress } = context;
    for (let step = steps[progress.step]; step !== undefined; step = steps[progress.step]) {
      if (context.killed.aborted) break;
      if (step.kind === "jump") await jump(step, context);
      else if (step.isConditional && progress.status !== 0) beginNextStep(progress, progress.status);
      else {
        const words = step.words.map((word) => unquote(word, (name) => variable(name, scriptName, context)));
        const [name, ...args] = words;
        if (name === "exit") return Number(args[0] ?? progress.status);
        beginNextStep(progress, await runCommand(words, step, context));
      }
    }
    return progress.status;
  };
}

async function jump({ to, isConditional }: JumpStep, { progress }: ProgramContext): Promise<void> {
  const isTaken = !isConditional || progress.status !== 0;
  beginNextStep(progress, 0);
  if (isTaken) progress.step = to;
  // An endless loop must let the others run.
  if (isTaken && !isConditional) await new Promise((resolve) => setImmediate(resolve));
}

async function runCommand(words: readonly string[], step: CommandStep, context: ProgramContext): Promise<number> {
  const [name = "", ...args] = words;
  const [, variableName, value] = ASSIGNMENT.exec(name) ?? [];
  if (variableName !== undefined && value !== undefined) {
    context.progress.variables[variableName] = value;
    return 0;
  }
  const redirectedContext = redirected({ ...context, args }, step);
  context.progress.hasBegun = true;
  return await runProgram(name, redirectedContext);
}

async function runProgram(name: string, context: ProgramContext): Promise<number> {
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

function redirected(context: ProgramContext, { stdoutTo, stderrTo }: CommandStep): ProgramContext {
  const write = { stdout: writerTo(stdoutTo, context), stderr: writerTo(stderrTo, context) };
  return { ...context, write: (source, bytes) => write[source](bytes) };
}

function writerTo(target: Target, context: ProgramContext): (bytes: Uint8Array) => Promise<void> {
  if (target === "stdout" || target === "stderr") return (bytes) => context.write(target, bytes);
  if (target.path === "/dev/null") return async () => {};
  const { files, cwd, progress } = context;
  const path = files.resolve(target.path, cwd);
  if (!target.isAppended && !progress.hasBegun) files.write(path, new Uint8Array(0));
  return async (bytes) => files.append(path, bytes);
}

function unquote(word: string, expand: (name: string) => string): string {
  return word.replaceAll(/'([^']*)'|"([^"]*)"|([^'"]+)/g, (_, single, double, bare) =>
    single === undefined ? expandAll(double ?? bare, expand) : single,
  );
}

function expandAll(text: string, expand: (name: string) => string): string {
  return text
    .replaceAll(/\$\(\(\s*(\w+)\s*\+\s*(\d+)\s*\)\)/g, (_, name: string, by: string) =>
      String(Number(expand(name)) + Number(by)),
    )
    .replaceAll(/\$([A-Za-z_][A-Za-z0-9_]*|[$0])/g, (_, name: string) => expand(name));
}

function variable(name: string, scriptName: string, { pid, progress, env }: ProgramContext): string {
  if (name === "$") return String(pid);
  if (name === "0") return scriptName;
  return progress.variables[name] ?? env[name] ?? "";
}
