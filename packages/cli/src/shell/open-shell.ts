import type { Arguments } from "../command/arguments.ts";
import { Interruption } from "../command/interruption.ts";
import type { Guest, GuestStartOptions } from "../guest/guest.ts";
import { commandFrom } from "../options/sandbox-options.ts";
import { passThrough } from "../output/print.ts";
import { feedStdin } from "../run/stdin.ts";
import { withExistingGuest, withNewGuest } from "../run/with-guest.ts";
import { Terminal, terminalEnv, terminalSize } from "./terminal.ts";

interface ShellCommand {
  /** Empty for the sandbox's shell. */
  readonly argv: readonly string[];
  readonly options: Omit<GuestStartOptions, "pty">;
}

/** Connects the user's terminal to one in the named sandbox, or in a new one. Returns the exit code. */
export async function openShell(arguments_: Arguments): Promise<number> {
  using interruption = new Interruption();
  const command = commandFrom(arguments_);
  const env = { ...terminalEnv(arguments_.get("rootfs"), process.env), ...command.env };
  const argv = arguments_.words;
  const [name] = arguments_.operands;
  const inGuest = (options: ShellCommand["options"]) => (guest: Guest) =>
    connect(guest, { argv, options }, interruption);
  const exitCode = await (name === undefined
    ? withNewGuest(arguments_, interruption, inGuest({ env }))
    : withExistingGuest(name, interruption, inGuest({ ...command, env })));
  return exitCode ?? (interruption.exitCode as number);
}

async function connect(guest: Guest, { argv, options }: ShellCommand, interruption: Interruption): Promise<number> {
  const { stdin, stdout } = process;
  const shell = await guest.start(argv.length === 0 ? undefined : argv, { ...options, pty: terminalSize(stdout) });
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
