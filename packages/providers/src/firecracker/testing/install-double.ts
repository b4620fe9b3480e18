import { chmod, copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resyncPadding } from "@sandpiper/protocol";
import { testRoot } from "../../guest/testing/test-root.ts";
import { findAgent, findLauncher } from "../../host/find-agent.ts";
import { findRunsc } from "../../host/find-runsc.ts";

const program = fileURLToPath(new URL("double/firecracker.ts", import.meta.url));
const jailer = fileURLToPath(new URL("double/jailer.sh", import.meta.url));

/** The double as programs that are found and started like the real ones. */
export interface InstalledDouble extends AsyncDisposable {
  readonly firecracker: string;
  readonly jailer: string;
}

/** `version` is the version that it prints. */
export async function installDouble({ version = "1.16.1" } = {}): Promise<InstalledDouble> {
  const runsc = await findRunsc(undefined);
  if ("reason" in runsc) throw new Error(`The double of Firecracker needs gVisor: ${runsc.reason}. ${runsc.hint}.`);
  const directory = await mkdtemp(join(tmpdir(), "firecracker-double-"));
  const programs = { firecracker: join(directory, "firecracker"), jailer: join(directory, "jailer") };
  const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
  const settings = [
    ["DOUBLE_ROOT", await testRoot()],
    ["DOUBLE_RUNSC", runsc.path],
    ["DOUBLE_AGENT", findAgent()],
    ["DOUBLE_LAUNCHER", findLauncher()],
    ["DOUBLE_PADDING", join(directory, "padding")],
  ] as const;
  const script = `#!/bin/sh
[ "$1" = --version ] && echo "Firecracker v${version}" && exit
export ${settings.map(([name, value]) => `${name}=${quoted(value)}`).join(" ")}
exec ${quoted(process.execPath)} ${quoted(program)} "$@"
`;
  await writeFile(join(directory, "padding"), resyncPadding());
  await writeFile(programs.firecracker, script, { mode: 0o755 });
  await copyFile(jailer, programs.jailer);
  await chmod(programs.jailer, 0o755);
  return { ...programs, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) };
}
