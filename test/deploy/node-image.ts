import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { findRunsc } from "../../packages/providers/src/host/find-runsc.ts";
import { nodeRecipe, recipeLines } from "../../scripts/setup/image-recipe.mjs";
import { nodeImagePath, planNodeImage } from "../../scripts/setup/images.mjs";
import { provideS3Server } from "../../scripts/setup/servers.mjs";
import { type Copy, readStage, root, type Stage } from "./dockerfile.ts";
import { hideDevPackages } from "./hide-dev-packages.ts";

/** A container's files: Debian's, and what a stage of the Dockerfile copies. */
export interface Image extends Pick<Stage, "env" | "command"> {
  /** Directories of an overlay, uppermost first. */
  readonly layers: readonly string[];
  readonly binds: readonly { readonly source: string; readonly target: string }[];
  /** The overlay that becomes /opt/sandpiper/node_modules; undefined if the stage copies none. */
  readonly nodeModules: readonly string[] | undefined;
}

/**
 * Assembles a stage of the Dockerfile from this machine's build, because tests have no registry for the images that it begins
 * with. The base is set-up's image of Debian's required packages and those that the Dockerfile installs. The copied files are
 * the repository's.
 */
export async function assembleImage(stageName: "node" | "store", directory: string): Promise<Image> {
  const stage = readStage(stageName);
  const missing = stage.packages.filter((name) => !recipeLines(nodeRecipe, "packages.txt").includes(name));
  if (missing.length > 0) throw new Error(`set-up's image lacks packages of the Dockerfile: ${missing.join(", ")}`);
  mkdirSync(directory, { recursive: true });
  const hasModules = stage.copies.some(({ target }) => target === MODULES);
  const binds = await Promise.all(
    stage.copies
      .filter(({ target }) => target !== MODULES)
      .map(async (copy) => ({ source: await sourceOf(copy, directory), target: copy.target })),
  );
  return {
    ...stage,
    layers: [await debian()],
    binds,
    nodeModules: hasModules ? [hideDevPackages(join(directory, "pruned")), join(root, "node_modules")] : undefined,
  };
}

const MODULES = "/opt/sandpiper/node_modules";

async function debian(): Promise<string> {
  const { problems, work } = planNodeImage();
  if (problems.length > 0) throw new Error(problems.map(({ missing }) => missing).join());
  await work?.();
  return nodeImagePath();
}

/** Where this machine has what a stage copies from another one. */
async function sourceOf({ from, source }: Copy, directory: string): Promise<string> {
  if (from === undefined || source.startsWith("/opt/sandpiper/"))
    return join(root, source.replace("/opt/sandpiper/", ""));
  if (basename(source) === "versitygw") return await provideS3Server();
  if (basename(source) === "runsc") return await runscPath();
  if (source === "/out/agent") return agentPrograms(join(directory, "agent"));
  throw new Error(`the Dockerfile copies ${source}, which the test cannot provide`);
}

async function runscPath(): Promise<string> {
  const found = await findRunsc(undefined);
  if (!("path" in found)) throw new Error(found.reason);
  return found.path;
}

/** The programs that the stage `build` installs. */
function agentPrograms(directory: string): string {
  const text = readFileSync(join(root, "deploy/compose/Dockerfile"), "utf8");
  const names = /for name in ([a-z ]+); do install .*sandpiper-\$name/.exec(text)?.[1]?.split(" ") ?? [];
  mkdirSync(directory);
  for (const name of names) {
    copyFileSync(join(root, "agent/target/release", `sandpiper-${name}`), join(directory, `sandpiper-${name}`));
  }
  return directory;
}
