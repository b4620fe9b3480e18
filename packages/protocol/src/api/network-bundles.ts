/** Hosts that package managers and version control use, as targets with ports. An operator can replace and add bundles. */
export const DEFAULT_NETWORK_BUNDLES: Readonly<Record<string, readonly string[]>> = Object.freeze({
  pypi: ["pypi.org:443", "files.pythonhosted.org:443"],
  npm: ["registry.npmjs.org:443", "registry.yarnpkg.com:443"],
  debian: [
    "deb.debian.org:80+443",
    "security.debian.org:80+443",
    "ftp.debian.org:80+443",
    "snapshot.debian.org:80+443",
    "archive.ubuntu.com:80+443",
    "security.ubuntu.com:80+443",
    "ports.ubuntu.com:80+443",
  ],
  github: [
    "github.com:22+443",
    "ssh.github.com:443",
    "api.github.com:443",
    "codeload.github.com:443",
    "*.githubusercontent.com:443",
    "ghcr.io:443",
  ],
  crates: ["crates.io:443", "index.crates.io:443", "static.crates.io:443", "static.rust-lang.org:443"],
  go: ["proxy.golang.org:443", "sum.golang.org:443", "go.dev:443", "dl.google.com:443"],
});
