import { SandboxError } from "@sandpiper/core";

/** The git command that clones a repository. */
export interface CloneCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The URL without secrets, for messages. */
  readonly shownUrl: string;
  /** Removes secrets from git's output. */
  redact(text: string): string;
}

/**
 * Every client of the engine can see the arguments, and git stores the URL in the clone. So the argument is a URL without
 * credentials, and the environment maps it to the full URL.
 */
export function cloneCommand(
  { git, ref }: { readonly git: string; readonly ref?: string | undefined },
  directory: string,
): CloneCommand {
  const full = URL.parse(git);
  // The message omits the text, which may contain a secret.
  if (full === null) throw invalid("is invalid", "use a URL such as https://host/path.git");
  full.hash = "";
  const bare = new URL(full);
  const isHttp = full.protocol === "http:" || full.protocol === "https:";
  if (!isHttp && full.password !== "") {
    const why = `has a password, which ${full.protocol}// does not support`;
    throw invalid(why, "remove the password, or use https://");
  }
  // In an ssh:// URL the user is not a secret.
  if (isHttp) bare.username = "";
  bare.password = "";
  bare.search = "";
  const mapping: Readonly<Record<string, string>> = {
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: `url.${full.href}.insteadOf`,
    GIT_CONFIG_VALUE_0: bare.href,
  };
  return {
    argv: ["git", "clone", ...(ref === undefined ? [] : ["--branch", ref]), "--", bare.href, directory],
    env: {
      // Without a terminal, a prompt would hang.
      GIT_TERMINAL_PROMPT: "0",
      GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
      // A redirect must not switch to another protocol.
      GIT_ALLOW_PROTOCOL: "http:https:git:ssh",
      ...(full.href === bare.href ? {} : mapping),
    },
    shownUrl: bare.href,
    redact: (text) => (full.href === bare.href ? text : redact(text, full)),
  };
}

function redact(text: string, { username, password, search, searchParams }: URL): string {
  // A user name without a password is a token.
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

function invalid(why: string, hint: string): SandboxError {
  return new SandboxError("invalid_git_url", { message: `the URL of the workspace's repository ${why}`, hint });
}
