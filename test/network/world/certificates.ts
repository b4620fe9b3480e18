import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../../bench/run.ts";
import { addresses } from "./addresses.ts";
import { certifiedNames } from "./zone.ts";

/** A certificate authority of the tests, and a certificate of it for every name and address of their internet. */
export interface Certificates {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export async function createCertificates(directory: string): Promise<Certificates> {
  const path = (name: string) => join(directory, name);
  const names = certifiedNames.map((name) => `DNS:${name}`);
  const literals = Object.values(addresses).map((address) => `IP:${address}`);
  const extensions = ["basicConstraints=CA:FALSE", `subjectAltName=${[...names, ...literals].join(",")}`];
  await writeFile(path("leaf.ext"), `${extensions.join("\n")}\n`);
  const ca = ["-x509", "-days", "2", "-subj", "/CN=Sandpiper test authority"];
  const caExtensions = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"];
  await openssl("req", ...KEY, ...ca, ...caExtensions, "-keyout", path("ca.key"), "-out", path("ca.pem"));
  const request = ["-subj", "/CN=site.example", "-keyout", path("leaf.key"), "-out", path("leaf.csr")];
  await openssl("req", ...KEY, ...request);
  const signed = ["-req", "-in", path("leaf.csr"), "-days", "2", "-CAcreateserial", "-extfile", path("leaf.ext")];
  await openssl("x509", ...signed, "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-out", path("leaf.pem"));
  const [authority = "", certificate = "", key = ""] = await Promise.all(
    ["ca.pem", "leaf.pem", "leaf.key"].map((name) => readFile(path(name), "utf8")),
  );
  return { authority, certificate, key };
}

async function openssl(...args: readonly string[]): Promise<void> {
  await run("openssl", args);
}
