import type { Sandbox } from "@sandpiper/core";
import type { Arguments } from "../arguments.ts";
import { parseEnv } from "../env-option.ts";
import { Interruption } from "../interruption.ts";
import { notice, silence } from "../notice.ts";
import { feedStdin } from "../run/feed-stdin.ts";
import { passThrough } from "../run/pass-through.ts";
import { createOptionsFrom } from "../sandbox-options.ts";
import { parseTransfer } from "../transfer/transfer.ts";
import { upload } from "../transfer/upload.ts";
import { withSandbox } from "../with-sandbox.ts";
import { type ShellCommand, startShell } from "./start-shell.ts";
import { Terminal } from "./terminal.ts";
import { terminalEnv } from "./terminal-env.ts";

/** Connects the user's terminal to one in a new sandbox. Returns the program's exit code. */
export async function openShell(arguments_: Arguments): Promise<number> {
  using interruption = new Interruption();
  const options = createOptionsFrom(arguments_);
  const uploads = arguments_.all("upload").map((text) => parseTransfer("upload", text, options.cwd));
  const warn = arguments_.has("quiet") ? silence : notice;
  const env = { ...terminalEnv(options.rootfs, process.env), ...parseEnv(arguments_.all("env"), process.env) };

  const exitCode = await withSandbox(options, interruption, async (sandbox) => {
    for (const transfer of uploads) await upload(sandbox, transfer, { owner: options.user, warn });
    return connect(sandbox, { argv: arguments_.words, env }, interruption);
  });
  return exitCode ?? (interruption.exitCode as number);
}

async function connect(sandbox: Sandbox, command: ShellCommand, interruption: Interruption): Promise<number> {
  using terminal = new Terminal(process.stdin, process.stdout);
  const shell = await startShell(sandbox, command, terminal.size);
  const resize = () => void shell.resize(terminal.size).catch(() => {});
  terminal.onResize(resize);
  // The window may have changed while the shell was starting.
  resize();
  const writeOutput = passThrough(interruption);
  const showOutput = async () => {
    for await (const { bytes } of shell.output) await writeOutput("stdout", bytes);
  };
  const inputFailed = new Promise<never>((_, reject) => feedStdin(shell, process.stdin).catch(reject));
  await Promise.race([showOutput(), inputFailed]);
  const { exitCode, signal } = await shell.wait();
  if (signal === null) terminal.endedTidily();
  return exitCode;
}
