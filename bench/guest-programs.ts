import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./run.ts";
import { oncePerRun, type Workspace } from "./workspace.ts";

const NAMES = ["true", "say", "tick", "floor", "ask", "attack", "net"] as const;

/** Host paths of the static programs that all subjects run. */
export type GuestPrograms = Readonly<Record<(typeof NAMES)[number], string>> & { readonly dir: string };

/** Compiles guest/*.c. */
export const guestPrograms = oncePerRun(compile);

async function compile(workspace: Workspace): Promise<GuestPrograms> {
  const dir = await workspace.makeDir("guest");
  for (const name of NAMES) {
    const source = fileURLToPath(new URL(`guest/${name}.c`, import.meta.url));
    await run("gcc", ["-O2", "-static", "-Wall", "-o", join(dir, name), source], { signal: workspace.signal }).catch(
      (cause) => {
        throw new Error("the bench compiles its guest programs with gcc; install it: apt-get install gcc libc6-dev", {
          cause,
        });
      },
    );
  }
  const paths = Object.fromEntries(NAMES.map((name) => [name, join(dir, name)]));
  return { ...(paths as Record<(typeof NAMES)[number], string>), dir };
}
