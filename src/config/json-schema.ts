import { z } from 'zod'
import { configSchema } from './schema.js'

/** The JSON Schema of the config file as it is written, for editors. */
export function configJsonSchema(): string {
  const schema = z.toJSONSchema(configSchema, { io: 'input' })
  return `${JSON.stringify({ title: 'Latchkey config', ...schema }, null, 2)}\n`
}
