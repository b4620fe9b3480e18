/**
 * @typedef {object} LockedPackage
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [link]
 * @property {boolean} [dev]
 * @property {boolean} [optional]
 * @property {Record<string, string>} [optionalDependencies]
 * @typedef {Record<string, LockedPackage>} LockedPackages the `packages` of a lock file, by path
 */

/**
 * Whether npm has installed what the lock file says. Compares contents, since a checkout or a copy changes times.
 * @param {LockedPackages} wanted the packages of package-lock.json
 * @param {LockedPackages} installed the packages of node_modules/.package-lock.json
 */
export function matchesLock(wanted, installed) {
  const isInPlace = Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const found = installed[path];
    // npm leaves out optional packages for other platforms.
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.integrity === entry.integrity && found.link === entry.link;
  });
  return isInPlace && Object.keys(installed).every((path) => Object.hasOwn(wanted, path));
}

/**
 * Optional packages that another package names and that the lock file lacks.
 * @param {LockedPackages} packages
 */
export function missingOptionalPackages(packages) {
  const paths = Object.keys(packages);
  return Object.values(packages).flatMap((entry) =>
    Object.entries(entry.optionalDependencies ?? {})
      .filter(([name]) => !paths.some((path) => path.endsWith(`node_modules/${name}`)))
      .map(([name, version]) => ({ name, version, dev: entry.dev === true })),
  );
}

const systems = ["android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const processors = ["arm64", "arm", "ia32", "loong64", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

/**
 * The platform in the name of a package, as the fields that make npm skip the package elsewhere.
 * @param {string} name for example `@scope/binding-linux-arm64-musl`
 */
export function platformOf(name) {
  const words = name.split(/[/-]/);
  const cpu = processors.filter((processor) => words.includes(processor));
  const os = systems.filter((system) => words.includes(system));
  if (cpu.length !== 1 || (os.length !== 1 && cpu[0] !== "wasm32")) throw new Error(`${name} names no known platform`);
  const isMusl = words.some((word) => word.startsWith("musl"));
  const libc = os[0] !== "linux" ? {} : { libc: [isMusl ? "musl" : "glibc"] };
  return { ...(os.length === 1 ? { os } : {}), cpu, ...libc };
}
