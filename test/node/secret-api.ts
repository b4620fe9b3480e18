import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createSecureServer, type Http2SecureServer, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import { Keyring } from "../../packages/node/src/auth/keyring.ts";
import { CertificateAuthority } from "../../packages/node/src/secrets/certificate-authority.ts";

/** An address that only the tests' servers listen on. */
const ADDRESS = "127.0.0.77";
const QUESTION_AT = 12;

export interface SeenRequest {
  readonly host: string;
  readonly url: string;
  readonly version: string;
  readonly authorization: string | undefined;
}

/** HTTPS servers under the names `*.secrets.test`, with DNS and an authority of their own. They speak HTTP/1.1 and HTTP/2. */
export class SecretApi implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly port: number;
  /** The settings of a node that reaches the servers. */
  readonly network: NonNullable<NodeConfigOptions["network"]>;
  readonly #dispose: () => Promise<void>;

  private constructor(server: Http2SecureServer, dnsPort: number, caFile: string, dispose: () => Promise<void>) {
    this.port = (server.address() as AddressInfo).port;
    this.network = { allowedCidrs: [`${ADDRESS}/32`], resolvers: [`127.0.0.1:${dnsPort}`], extraCaFile: caFile };
    this.#dispose = dispose;
    server.on("request", (request: Http2ServerRequest, response) => {
      this.seen.push({
        host: String(request.headers.host ?? request.authority),
        url: request.url,
        version: request.httpVersion,
        authorization: request.headers.authorization,
      });
      request.resume();
      response.setHeader("content-type", "text/plain");
      response.end(`answer ${this.seen.length}\n`);
    });
  }

  static async start(directory: string): Promise<SecretApi> {
    const keyring = new Keyring({ secrets: ["the authority of the tests' servers"], salt: "test" });
    const authority = new CertificateAuthority({ keyring, clock: systemClock });
    const caFile = join(directory, "internet.pem");
    writeFileSync(caFile, authority.certificates);
    const server = createSecureServer({
      allowHTTP1: true,
      SNICallback: (name, done) => done(null, authority.contextFor(name)),
    });
    server.listen(0, ADDRESS);
    await once(server, "listening");
    const dns = createSocket("udp4");
    dns.on("message", (query, { address, port }) => dns.send(answerTo(query), port, address));
    dns.bind(0, "127.0.0.1");
    await once(dns, "listening");
    return new SecretApi(server, dns.address().port, caFile, async () => {
      dns.close();
      server.close();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}

/** Every name has the address; other types than A have no records. */
function answerTo(query: Buffer): Buffer {
  const end = query.indexOf(0, QUESTION_AT) + 5;
  const question = query.subarray(QUESTION_AT, end);
  const isAddress = question.readUInt16BE(question.length - 4) === 1;
  const header = Buffer.from([...query.subarray(0, 2), 0x85, 0x80, 0, 1, 0, isAddress ? 1 : 0, 0, 0, 0, 0]);
  const record = Buffer.from([0xc0, QUESTION_AT, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...ADDRESS.split(".").map(Number)]);
  return Buffer.concat([header, question, ...(isAddress ? [record] : [])]);
}
