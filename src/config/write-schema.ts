import { writeFileSync } from 'node:fs'
import { configJsonSchema } from './schema.js'

writeFileSync('config.schema.json', configJsonSchema())
