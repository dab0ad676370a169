// Mnemarch for opencode: hands its events to `mnemarch hook` and what that answers to the model.
// Written by `mnemarch install opencode`; `mnemarch uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = ["mnemarch", "hook", "--host", "opencode"]
const TIMEOUT_MS = 10000

// One event; gives the hook's answer, or nothing. Never throws: a memory that fails must not stop the work.
const hook = (event) =>
  new Promise((resolve) => {
    let answer = ""
    const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd: event.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS)
    const done = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(answer))
      } catch {
        resolve({})
      }
    }
    child.on("error", done)
    child.on("close", done)
    child.stdout.on("data", (part) => (answer += part))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })

export const Mnemarch = async ({ directory }) => {
  const waiting = {} // by session: what the system prompt gets, from the start and from prompts
  const warnings = {} // by call of a tool: what was said before it, for the model to read with its result
  const children = new Set() // sessions of subagents

  const say = async (name, session, fields = {}) => {
    const answer = await hook({ hook_event_name: name, session_id: session, cwd: directory, ...fields })
    return answer.additionalContext
  }
  const keep = (session, context) => {
    if (context) waiting[session].push(context)
  }

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if (!waiting[session]) {
        waiting[session] = []
        keep(session, await say("session.created", session))
      }
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      keep(session, await say("chat.message", session, { prompt: texts.join("\n") }))
    },
    "experimental.chat.system.transform": async (input, output) => {
      output.system.push(...(waiting[input.sessionID] ?? []))
    },
    "tool.execute.before": async (input, output) => {
      warnings[input.callID] = await say("tool.execute.before", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: output.args,
      })
    },
    "tool.execute.after": async (input, output) => {
      const context = await say("tool.execute.after", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: input.args,
        tool_response: { output: output.output, metadata: { exit: output.metadata?.exit } },
      })
      for (const text of [warnings[input.callID], context]) if (text) output.output += `\n\n${text}`
      delete warnings[input.callID]
    },
    "experimental.session.compacting": async (input, output) => {
      const context = await say("experimental.session.compacting", input.sessionID)
      if (context) output.context.push(context)
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created" && event.properties.info.parentID) children.add(session)
      if (event.type === "session.idle" && children.has(session)) await say("SubagentStop", session)
      else if (event.type === "session.idle") await say("session.idle", session)
    },
    dispose: async () => {
      for (const session of Object.keys(waiting)) await say("dispose", session)
    },
  }
}
