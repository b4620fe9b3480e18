import { configFields } from "../../packages/node/src/config/config-field.ts";

/** The text of docs/configuration.md. */
export function formatConfigDocs(): string {
  const rows = configFields.map(
    ({ key, env, flag, description, allowed, shownDefault }) =>
      `| \`${key}\` | \`${env}\` | \`--${flag}\` | ${description} | ${escaped(allowed)} | ${escaped(shownDefault)} |`,
  );
  return `<!-- Written by \`npm run docs\` from packages/node/src/config/node-config.ts; change that file or scripts/docs/config-docs.ts instead. -->
# Configuration of a node

A node needs none: \`npm start\` listens on 127.0.0.1:4747 and keeps everything under \`~/.sandpiper\`.

What is set comes from four places, of which the later one wins: the defaults below, a JSON file (\`config.json\` in home, or the one that
\`--config FILE\` or \`SANDPIPER_CONFIG\` names), the environment, flags. A wrong value, key or flag stops the start with exit code 2 and a message
that names where it stands, what it is, and what is allowed.

\`\`\`json
{
  "port": 4800,
  "logLevel": "debug",
  "defaults": { "memoryMib": 512, "idleTimeoutMs": 600000 },
  "pools": [{ "memoryMib": 512, "target": 4 }]
}
\`\`\`

The same as flags: \`--port 4800 --log-level debug --defaults-memory-mib 512 --defaults-idle-timeout-ms 600000 --pools '[{"memoryMib":512,"target":4}]'\`.
In the environment and on the command line lists are separated by commas (a flag may also be given several times), \`pools\` is JSON, switches are
\`true\` or \`false\` (the flag alone means true), and \`none\` stands for what is \`null\` in the file.

| key in the file | environment | flag | meaning | allowed | default |
|---|---|---|---|---|---|
${rows.join("\n")}

## What is in home

| file | what it is |
|---|---|
| \`config.json\` | the configuration, if you wrote one |
| \`api-key\` | the first key, made at the first start; only its owner may read it |
| \`secret\` | what the tokens of sandboxes are made from |
| \`node-id\`, \`cluster-secret\` | in a cluster: this node's name, and what its nodes know each other by |
| \`node.db\` | records of sandboxes, keys, events, webhooks and the audit log (SQLite) |
| \`images/\` | root filesystems that sandboxes may name |
| \`node/\` | the instances themselves |

One node at a time uses a home; a second one is refused and told who has it.

## Beyond this machine

A node on any other address than loopback needs \`tls.certFile\` and \`tls.keyFile\`, or a proxy in front of 127.0.0.1 that has TLS. Without either
it refuses to start; \`--allow-insecure\` is for networks where everybody may read your keys.

Webhooks only reach public addresses: the address is checked when the connection is made, so a name cannot change its meaning in between.
\`allowPrivateWebhooks\` lifts that.

## Signals and exit codes

SIGTERM and SIGINT stop a node: it takes no new connections, lets requests under way finish for \`stopGraceMs\`, and ends. **Sandboxes go on
running**, with their processes; the next start takes them over and says how many it found. A second signal ends the node at once; that loses no
sandbox either.

| exit code | meaning |
|---|---|
| 0 | stopped as asked |
| 1 | could not start, or failed; one message on standard error says why and what to do |
| 2 | wrong configuration |
| 130, 143 | ended at once by a second SIGINT, SIGTERM |

## Logs

On a terminal lines are for people, elsewhere one JSON object per line on standard output; \`logFormat\` decides otherwise. The line with
\`"msg":"ready"\` has the URL and the file with the key. Credentials and the values of environment variables are never logged.

## Under systemd

\`\`\`ini
[Service]
Type=exec
ExecStart=/opt/sandpiper/node_modules/.bin/node /opt/sandpiper/packages/node/src/daemon/main.ts
Environment=SANDPIPER_HOME=/var/lib/sandpiper
StateDirectory=sandpiper
# Sandboxes outlive the node: only the node itself is to be stopped.
KillMode=process
Delegate=yes
Restart=on-failure
RestartPreventExitStatus=2
\`\`\`
`;
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|");
}
