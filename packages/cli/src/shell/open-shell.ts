import type { Arguments } from "../command/arguments.ts";
import { Interruption } from "../command/interruption.ts";
import type { Guest } from "../guest/guest.ts";
import { parseEnv } from "../options/env-option.ts";
import { passThrough } from "../output/pass-through.ts";
import { feedStdin } from "../run/feed-stdin.ts";
import { type ShellCommand, startShell } from "./start-shell.ts";
import { Terminal, terminalSize } from "./terminal.ts";
import { terminalEnv } from "./terminal-env.ts";

/** Connects the user's terminal to one in a sandbox: in the one that is named, or in a new one. Returns the exit code. */
export async function openShell(arguments_: Arguments): Promise<number> {
  using interruption = new Interruption();
  const given = parseEnv(arguments_.all("env"), process.env);
  const env = { ...terminalEnv(arguments_.get("rootfs"), process.env), ...given };
  const argv = arguments_.words;
  const [name] = arguments_.operands;
  const exitCode = await (name === undefined
    ? inNewGuest(arguments_, { argv, options: { env } }, interruption)
    : inExistingGuest(
        name,
        { argv, options: { env, cwd: arguments_.get("cwd"), user: arguments_.get("user") } },
        interruption,
      ));
  return exitCode ?? (interruption.exitCode as number);
}

async function inNewGuest(arguments_: Arguments, command: ShellCommand, interruption: Interruption) {
  const { withGuest } = await import("../run/with-guest.ts");
  return withGuest(arguments_, interruption, (guest) => connect(guest, command, interruption));
}

async function inExistingGuest(name: string, command: ShellCommand, interruption: Interruption) {
  const { withExistingGuest } = await import("../run/with-existing-guest.ts");
  return withExistingGuest(name, interruption, (guest) => connect(guest, command, interruption));
}

async function connect(guest: Guest, command: ShellCommand, interruption: Interruption): Promise<number> {
  const { stdin, stdout } = process;
  const shell = await startShell(guest, command, terminalSize(stdout));
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
