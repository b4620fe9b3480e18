import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Creates certificates of an authority, a server and a client: ca.pem, server-*.pem, cert.pem and key.pem. */
export async function makeCertificates(directory: string, address: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const openssl = (...args: readonly string[]) => run("openssl", args, { cwd: directory });
  await openssl(..."req -x509 -keyout ca-key.pem -out ca.pem -days 2 -subj /CN=test-ca".split(" "), ...KEY);
  const sign = async (name: string, [cert, key]: readonly [string, string], extensions: string) => {
    const request = `${name}.csr`;
    await openssl("req", ...KEY, "-keyout", key, "-out", request, "-subj", `/CN=${name}`);
    await writeFile(join(directory, `${name}.ext`), extensions);
    const authority = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-set_serial", String(Date.now())];
    await openssl("x509", "-req", "-in", request, ...authority, "-days", "2", "-extfile", `${name}.ext`, "-out", cert);
  };
  const server = `subjectAltName=IP:${address}\nextendedKeyUsage=serverAuth\n`;
  await sign("server", ["server-cert.pem", "server-key.pem"], server);
  await sign("client", ["cert.pem", "key.pem"], "extendedKeyUsage=clientAuth\n");
}
