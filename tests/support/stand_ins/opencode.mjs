import { spawnSync } from "node:child_process"
import fs from "node:fs"

const settings = JSON.parse(process.env.OPENCODE_CONFIG_CONTENT)
const plugins = []
for (const name of settings.plugin.filter((name) => name.startsWith("file://"))) {
  for (const make of Object.values(await import(name))) plugins.push(await make({}))
}
console.log("share", settings.share)
const here = process.cwd()
const calls = [
  ["read", { filePath: `${here}/x` }, () => {}],
  ["write", { filePath: `${here}/file_a.txt`, content: "written by write tool, key a\n" },
    (args) => fs.writeFileSync(args.filePath, args.content)],
  ["bash", { command: 'echo "shell key a" >> shell_a.txt', description: "append" },
    (args) => spawnSync("sh", ["-c", args.command])],
]
for (const [index, [tool, args, carryOut]] of calls.entries()) {
  const call = { tool, sessionID: "ses_e1a0b3d16ffe7CGo1SggI8lQuN", callID: `call_${index}_0` }
  for (const plugin of plugins) await plugin["tool.execute.before"](call, { args })
  carryOut(args)
  const made = { title: tool, output: "done", metadata: {} }
  for (const plugin of plugins) await plugin["tool.execute.after"]({ ...call, args }, made)
}
