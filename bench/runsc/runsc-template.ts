import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createSandbox } from "@sandpiper/node";
import { listProcesses } from "../processes.ts";
import { run } from "../run.ts";
import { oncePerRun, type Workspace } from "../workspace.ts";

/** Path of the agent in every instance; another program can replace it. */
const AGENT_PATH = "/.sandpiper/agent";

/** The parts of config.json that change here. */
interface OciConfig {
  readonly process: { readonly args: readonly string[] };
  readonly mounts: readonly { readonly destination: string; readonly source: string }[];
  readonly linux: { readonly cgroupsPath: string; readonly namespaces: readonly { readonly type: string }[] };
}

export interface Replacement {
  /** Host path of the program that replaces the agent; default is the agent itself. */
  readonly program?: string;
  /** Command line inside; default is the agent's. */
  readonly args?: readonly string[];
}

/** How the provider starts a sandbox, copied from a running one: its bundle and runsc's flags. */
export type RunscTemplate = Awaited<ReturnType<typeof readTemplate>>;

export const runscTemplate = oncePerRun(readTemplate);

async function readTemplate(workspace: Workspace) {
  const home = await workspace.makeDir("template");
  const dir = await workspace.makeDir("runsc");
  await workspace.makeDir("runsc", "instances");
  await using sandbox = await createSandbox({ home, signal: workspace.signal });
  const { id } = sandbox;
  const original = { id, dir: join(home, "gvisor/instances", id), root: join(home, "gvisor/root") };
  const config = JSON.parse(await readFile(join(original.dir, "config.json"), "utf8")) as OciConfig;
  const { runscPath, flags } = await readFlags(id);
  const version = await run(runscPath, ["--version"]);
  workspace.versions["runsc"] = version.stdout.split("\n")[0]?.replace("runsc version ", "") ?? "unknown";
  const { process, mounts, linux } = config;
  const images = join(home, "gvisor/images");
  const [image = ""] = await readdir(images);
  return {
    runscPath,
    instancesDir: join(dir, "instances"),
    /** The provider's flags, with an instance's directory. */
    flagsFor: (instanceDir: string) =>
      flags.map((flag) => flag.replaceAll(original.dir, instanceDir).replaceAll(original.root, join(dir, "root"))),
    configFor: (instanceId: string, { program, args = process.args }: Replacement) => ({
      ...config,
      // Without the launcher, the image has no mount with mapped owners.
      root: { path: join(images, image), readonly: false },
      process: { ...process, args },
      mounts: mounts.map((mount) =>
        program !== undefined && mount.destination === AGENT_PATH ? { ...mount, source: program } : mount,
      ),
      linux: {
        ...linux,
        uidMappings: [],
        gidMappings: [],
        namespaces: linux.namespaces.filter(({ type }) => type !== "user"),
        cgroupsPath: linux.cgroupsPath.replaceAll(id, instanceId),
      },
    }),
  };
}

/** runsc passes its flags to the sandbox's process, before the verb. */
async function readFlags(id: string): Promise<{ runscPath: string; flags: string[] }> {
  const boot = (await listProcesses()).find((one) => one.argv[0] === "runsc-sandbox" && one.argv.includes(id));
  const verb = boot?.argv.indexOf("boot") ?? -1;
  if (boot === undefined || verb === -1) throw new Error(`found no process of runsc for sandbox ${id}`);
  const flags = boot.argv.slice(1, verb).filter((flag) => !/-fd=\d+$/.test(flag));
  return { runscPath: boot.executable, flags };
}
