import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.mjs";
import { recipeLines } from "./image-recipe.mjs";

const USER = 1000;
/** Documentation and translations, which take space and which no sandbox reads. */
const UNUSED = ["bug", "doc", "doc-base", "info", "lintian", "locale", "man"].map((name) => `usr/share/${name}`);

/**
 * Does what the packages' own scripts would do, as far as a sandbox needs it. The scripts themselves expect a system that
 * is being installed.
 * @param {string} root
 * @param {import("./image-recipe.mjs").Recipe} recipe
 */
export async function finishImage(root, recipe) {
  for (const path of UNUSED) rmSync(join(root, path), { recursive: true, force: true });
  for (const files of recipe.files) cpSync(files, root, { recursive: true, force: true });
  makeLinks(root, recipe);
  makeDirectories(root);
  bundleCertificates(root);
  await inside(root, "Indexing the image's libraries", ["/sbin/ldconfig"]);
  await compilePython(root);
}

/**
 * Makes the links that Debian's alternatives system would make.
 * @param {string} root
 * @param {import("./image-recipe.mjs").Recipe} recipe
 */
function makeLinks(root, recipe) {
  for (const line of recipeLines(recipe, "links.txt")) {
    const [path = "", target = ""] = line.split(" ");
    rmSync(join(root, path), { force: true });
    symlinkSync(target, join(root, path));
  }
}

/** @param {string} root */
function makeDirectories(root) {
  const modes = { "": 0o755, root: 0o700, tmp: 0o1777, "var/tmp": 0o1777, "home/user": 0o755 };
  for (const [path, mode] of Object.entries(modes)) {
    mkdirSync(join(root, path), { recursive: true });
    chmodSync(join(root, path), mode);
  }
  chownSync(join(root, "home/user"), USER, USER);
}

/** Writes all certificate authorities into the one file where programs look for them. @param {string} root */
function bundleCertificates(root) {
  const directory = join(root, "usr/share/ca-certificates/mozilla");
  const texts = readdirSync(directory)
    .sort()
    .map((name) => readFileSync(join(directory, name), "utf8").trim());
  mkdirSync(join(root, "etc/ssl/certs"), { recursive: true });
  writeFileSync(join(root, "etc/ssl/certs/ca-certificates.crt"), `${texts.join("\n")}\n`);
}

/** A user in the sandbox cannot write Python's compiled library, and would wait for its compilation at each start. @param {string} root */
async function compilePython(root) {
  const version = readdirSync(join(root, "usr/lib")).find((name) => /^python3\.\d+$/.test(name));
  if (version === undefined || !existsSync(join(root, "usr/bin", version))) return;
  const flags = ["-q", "--invalidation-mode", "unchecked-hash", "-x", "/(test|tests|idlelib|lib2to3)/"];
  const directories = [`/usr/lib/${version}`, "/usr/lib/python3"];
  await inside(root, "Compiling Python's library", [
    `/usr/bin/${version}`,
    "-m",
    "compileall",
    ...flags,
    ...directories,
  ]);
}

/**
 * @param {string} root
 * @param {string} title
 * @param {readonly string[]} argv
 */
function inside(root, title, argv) {
  const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };
  const hint = "A program of the image failed; if the disk is not full, report the lines above.";
  return runCommand({ title, argv: ["chroot", root, ...argv], cwd: "/", env, hint });
}
