import type { Sandbox } from "@sandpiper/core";
import type { Arguments } from "../arguments.ts";
import { parseEnv } from "../env-option.ts";
import { Interruption } from "../interruption.ts";
import { feedStdin } from "../run/feed-stdin.ts";
import { passThrough } from "../run/pass-through.ts";
import { withSandbox } from "../with-sandbox.ts";
import { type ShellCommand, startShell } from "./start-shell.ts";
import { Terminal, terminalSize } from "./terminal.ts";
import { terminalEnv } from "./terminal-env.ts";

/** Connects the user's terminal to one in a new sandbox. Returns the program's exit code. */
export async function openShell(arguments_: Arguments): Promise<number> {
  using interruption = new Interruption();
  const given = parseEnv(arguments_.all("env"), process.env);
  const command = {
    argv: arguments_.words,
    env: { ...terminalEnv(arguments_.get("rootfs"), process.env), ...given },
  };
  const exitCode = await withSandbox(arguments_, interruption, (sandbox) => connect(sandbox, command, interruption));
  return exitCode ?? (interruption.exitCode as number);
}

async function connect(sandbox: Sandbox, command: ShellCommand, interruption: Interruption): Promise<number> {
  const { stdin, stdout } = process;
  const shell = await startShell(sandbox, command, terminalSize(stdout));
  using terminal = new Terminal(stdin, stdout);
  const resize = () => void shell.resize(terminalSize(stdout)).catch(() => {});
  stdout.on("resize", resize);
  // The window may have changed while the shell was starting.
  resize();
  const writeOutput = passThrough(interruption);
  const showOutput = async () => {
    for await (const { bytes } of shell.output) await writeOutput("stdout", bytes);
  };
  const inputFailed = new Promise<never>((_, reject) => feedStdin(shell, stdin).catch(reject));
  await Promise.race([showOutput(), inputFailed]);
  const { exitCode, signal } = await shell.wait();
  if (signal === null) terminal.endedTidily();
  return exitCode;
}
