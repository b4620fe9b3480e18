import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";

const run = promisify(execFile);

export const repo = join(import.meta.dirname, "../..");
const BUILD_TIMEOUT_MS = 600_000;
const INSTALL_TIMEOUT_MS = 300_000;

interface PackedManifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, unknown>>;
}

export interface StagedPackage {
  readonly directory: string;
  readonly manifest: PackedManifest;
}

/** The output of `npm run build`, in a temporary directory. */
export class PackedPackages {
  readonly #directory = mkdtempSync(join(tmpdir(), "sandpiper-packed-"));

  /** One for all tests of a file. */
  static use(): PackedPackages {
    const packages = new PackedPackages();
    beforeAll(() => packages.#build(), BUILD_TIMEOUT_MS);
    afterAll(() => rmSync(packages.#directory, { recursive: true, force: true }), INSTALL_TIMEOUT_MS);
    return packages;
  }

  staged(): StagedPackage[] {
    const root = join(this.#directory, "dist/npm");
    return readdirSync(root).map((folder) => {
      const directory = join(root, folder);
      return { directory, manifest: JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) };
    });
  }

  /** A directory with those tarballs installed, selected by the names of the packages' folders. */
  install(...folders: readonly string[]): { readonly path: string } {
    const path = join(this.#directory, `program-${folders.join("-")}`);
    beforeAll(async () => {
      mkdirSync(path);
      writeFileSync(join(path, "package.json"), JSON.stringify({ private: true, type: "module" }));
      await npmInstall(
        path,
        folders.map((folder) => this.#tarball(folder)),
      );
    }, INSTALL_TIMEOUT_MS);
    return { path };
  }

  async #build(): Promise<void> {
    const argv = [join(repo, "scripts/build.ts"), join(this.#directory, "dist")];
    await run(process.execPath, argv, { cwd: repo }).catch(({ stdout, stderr }) => {
      throw new Error(`npm run build failed:\n${stdout}${stderr}`);
    });
  }

  #tarball(folder: string): string {
    const prefix = folder === "cli" ? "sandpiper-cli-" : `sandpiper-${folder}-`;
    const dist = join(this.#directory, "dist");
    return join(dist, readdirSync(dist).find((name) => name.startsWith(prefix)) as string);
  }
}

export async function npmInstall(directory: string, packages: readonly string[]): Promise<void> {
  const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  await run("npm", ["install", "--prefix", directory, ...options, ...packages], { cwd: directory });
}
