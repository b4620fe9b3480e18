import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";

const PORT = "2375";
const TLS_PORT = "2376";

/** An engine's address, and the setting that it came from. */
export interface Endpoint {
  /** `unix:`, `http:` or `https:`. */
  readonly url: URL;
  /** The setting to correct if the address is wrong: `DOCKER_HOST`, `the context "build"`, … */
  readonly origin: string;
  readonly tls: EndpointTls | undefined;
}

/** In PEM. */
export interface EndpointTls {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** False only if a context turns the check of the engine's certificate off. */
  readonly isVerified: boolean;
}

/** Parses an engine's address like Docker's client: `unix:`, `tcp:`, `http:`, `https:`, or only a host and a port. */
export function parseEndpointUrl(
  text: string,
  { origin, isTls }: { readonly origin: string; readonly isTls: boolean },
) {
  const shown = text.replace(/:[^:/@]*@/, ":…@");
  const refuse = (why: string, hint: string) =>
    new SandboxError("engine_url", {
      message: `invalid engine address ${JSON.stringify(shown)} (${origin}): ${why}`,
      hint,
    });
  const forms = "use an address such as unix:///var/run/docker.sock or tcp://127.0.0.1:2375";
  const full = text.includes("://") ? text : `tcp://${text}`;
  const scheme = full.slice(0, full.indexOf("://"));
  if (scheme === "ssh") {
    const target = full.slice("ssh://".length).replace(/\/.*$/, "");
    const forward = `ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock ${target}`;
    throw refuse("ssh is not supported", `forward the engine's socket (${forward}) and use unix:///tmp/engine.sock`);
  }
  if (scheme === "unix") return unixUrl(full, () => refuse("the path is not absolute", forms));
  if (scheme !== "tcp" && scheme !== "http" && scheme !== "https") throw refuse(`unknown scheme ${scheme}:`, forms);
  const protocol = scheme === "https" || isTls ? "https" : "http";
  const url = URL.parse(`${protocol}://${full.slice(scheme.length + 3)}`);
  if (url === null || url.hostname === "") throw refuse("the host is missing", forms);
  if (url.pathname !== "/" || url.search !== "") throw refuse("an engine's address has no path", forms);
  if (url.username !== "") throw refuse("an engine's address has no credential", forms);
  if (url.port === "" && scheme === "tcp") url.port = protocol === "https" ? TLS_PORT : PORT;
  return url;
}

/** Reads the certificates of a directory, under the file names of Docker's client. */
export async function readTls(
  directory: string,
  { isVerified }: { readonly isVerified: boolean },
): Promise<EndpointTls> {
  const [ca, cert, key] = await Promise.all(["ca.pem", "cert.pem", "key.pem"].map((name) => read(directory, name)));
  if (cert === undefined && key !== undefined) throw badCertificates(directory, "cert.pem is missing");
  if (key === undefined && cert !== undefined) throw badCertificates(directory, "key.pem is missing");
  if (isVerified && ca === undefined) throw badCertificates(directory, "ca.pem is missing");
  return { ca, cert, key, isVerified };
}

function unixUrl(text: string, refused: () => SandboxError): URL {
  const path = text.slice("unix://".length);
  if (!path.startsWith("/")) throw refused();
  const url = new URL("unix:///");
  url.pathname = path.split("/").map(encodeURIComponent).join("/");
  return url;
}

async function read(directory: string, name: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, name), "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw badCertificates(directory, message);
  }
}

function badCertificates(directory: string, why: string): SandboxError {
  return new SandboxError("engine_certificates", {
    message: `cannot use the engine's certificates in ${directory}: ${why}`,
  });
}
