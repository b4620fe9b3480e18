import { fileURLToPath } from "node:url";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { DirectoryStore } from "./directory-store.ts";
import { S3Store } from "./s3-store.ts";

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** The store at `file:///directory` or `s3://bucket/prefix`. Nothing is read or written yet. */
export function openStore(url: string): ObjectStore {
  const parsed = URL.parse(url);
  if (parsed === null) throw badUrl(url, "it is no URL");
  if (parsed.search !== "" || parsed.hash !== "") throw badUrl(url, "it has a query or a fragment");
  if (parsed.protocol === "file:") return openDirectory(url, parsed);
  if (parsed.protocol === "s3:") return openBucket(url, parsed);
  throw badUrl(url, `${parsed.protocol} is not known`);
}

function openDirectory(url: string, parsed: URL): ObjectStore {
  if (parsed.hostname !== "" || !/^file:\/\/\//i.test(url)) throw badUrl(url, "the directory is not absolute");
  try {
    return new DirectoryStore(fileURLToPath(parsed));
  } catch {
    throw badUrl(url, "its path cannot be used");
  }
}

function openBucket(url: string, parsed: URL): ObjectStore {
  if (parsed.username !== "" || parsed.password !== "") throw badUrl(url, "credentials do not belong into it");
  if (!BUCKET.test(parsed.hostname) || parsed.port !== "") throw badUrl(url, "the bucket's name is wrong");
  const prefix = parsed.pathname.replace(/^\/+|\/+$/g, "");
  if (prefix !== "" && !/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/.test(prefix)) throw badUrl(url, "the prefix is wrong");
  return new S3Store({ bucket: parsed.hostname, prefix });
}

function badUrl(url: string, why: string): SandboxError {
  // What somebody took for a URL may hold a password.
  const shown = url.replace(/\/\/[^/@]*@/, "//***@").slice(0, 200);
  return new SandboxError("invalid_argument", {
    reason: "bad_store_url",
    message: `${JSON.stringify(shown)} names no store: ${why}`,
    hint: "Use file:///absolute/directory or s3://bucket/prefix.",
  });
}
