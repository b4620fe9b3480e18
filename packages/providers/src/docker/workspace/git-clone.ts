import { SandboxError } from "@sandpiper/core";

/** How git is called to clone a repository, and how it is spoken of. */
export interface CloneCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Without what could be a secret. */
  readonly shownUrl: string;
  /** Takes from git's own words what could be one. */
  redact(text: string): string;
}

/**
 * Arguments are seen by everybody who may look at the engine, and git writes the URL it is given into the clone. So it
 * is given one without credentials, and is told in its environment what that one means.
 */
export function cloneCommand(
  { git, ref }: { readonly git: string; readonly ref?: string | undefined },
  directory: string,
): CloneCommand {
  const full = parseUrl(git);
  full.hash = "";
  const bare = new URL(full);
  const isHttp = full.protocol === "http:" || full.protocol === "https:";
  if (!isHttp && full.password !== "") throw passwordNotUsed(full);
  // The user of ssh:// is a part of the address.
  if (isHttp) bare.username = "";
  bare.password = "";
  bare.search = "";
  const meaning: Readonly<Record<string, string>> = {
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: `url.${full.href}.insteadOf`,
    GIT_CONFIG_VALUE_0: bare.href,
  };
  return {
    argv: ["git", "clone", ...(ref === undefined ? [] : ["--branch", ref]), "--", bare.href, directory],
    env: {
      // Nobody is there to answer a question.
      GIT_TERMINAL_PROMPT: "0",
      GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
      // A redirection must not lead to another way of fetching.
      GIT_ALLOW_PROTOCOL: "http:https:git:ssh",
      ...(full.href === bare.href ? {} : meaning),
    },
    shownUrl: bare.href,
    redact: (text) => (full.href === bare.href ? text : redact(text, full)),
  };
}

function redact(text: string, { username, password, search, searchParams }: URL): string {
  // A name alone is a token.
  const secret = password === "" ? username : password;
  const hidden = [secret, decoded(secret), search, ...searchParams.values()].filter((part) => part.length > 1);
  const plain = text.replaceAll(/\/\/[^\s/@]*@/g, "//");
  return hidden.reduce((rest, part) => rest.replaceAll(part, "***"), plain);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parseUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    // The text itself may hold a secret.
    throw new SandboxError("invalid_argument", {
      reason: "invalid_git_url",
      message: "the URL of the workspace's repository cannot be read",
      hint: "give one such as https://host/path.git",
    });
  }
}

function passwordNotUsed({ protocol }: URL): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_git_url",
    message: `the URL of the workspace's repository has a password, which ${protocol}// does not use`,
    hint: "leave it out; https:// takes one",
  });
}
