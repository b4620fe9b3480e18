import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import type { Server } from "node:net";
import { join } from "node:path";
import { ports } from "./addresses.ts";
import type { Certificates } from "./certificates.ts";
import { DebianArchive } from "./debian-archive.ts";
import { createRepository, serveGit } from "./git-server.ts";
import { GoProxy } from "./go-proxy.ts";
import { hostOf, serveSite } from "./http-site.ts";
import { NpmRegistry } from "./npm-registry.ts";
import { PythonIndex } from "./python-index.ts";
import type { Sightings } from "./sightings.ts";
import { echoMessages } from "./web-socket-echo.ts";

export interface WebServersOptions {
  readonly directory: string;
  readonly certificates: Certificates;
  readonly sightings: Sightings;
}

/** The files that a test needs to use the sites. */
export interface WebServers {
  readonly npmLockFile: string;
}

/** Every site over HTTP and HTTPS (HTTP/1.1 and HTTP/2), chosen by the name that the client asks for, and WebSockets that echo. */
export async function serveWeb({ directory, certificates, sightings }: WebServersOptions): Promise<WebServers> {
  const [python, npm, debian, go] = await Promise.all([
    PythonIndex.build(join(directory, "python")),
    NpmRegistry.build(join(directory, "npm")),
    DebianArchive.build(join(directory, "debian")),
    GoProxy.build(join(directory, "go")),
    createRepository(join(directory, "git")),
  ]);
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const host = hostOf(request);
    if (host === "pypi.org" || host === "files.pythonhosted.org") python.serve(request, response);
    else if (host === "registry.npmjs.org") npm.serve(request, response);
    else if (host === "deb.debian.org") debian.serve(request, response);
    else if (host === "proxy.golang.org") go.serve(request, response);
    else if (host === "github.com") serveGit(join(directory, "git"), request, response);
    else serveSite(request, response);
  };
  const { certificate: cert, key } = certificates;
  const plain = createServer(serve);
  const secure = createSecureServer(
    { cert, key, allowHTTP1: true },
    serve as (request: unknown, response: unknown) => void,
  );
  for (const server of [plain, secure] as Server[]) {
    server.on("connection", sightings.note).on("error", () => undefined);
    server.on("upgrade", echoMessages);
  }
  await Promise.all([listen(plain, ports.http), listen(secure as Server, ports.https)]);
  return { npmLockFile: npm.lockFile() };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "::");
  await once(server, "listening");
}
