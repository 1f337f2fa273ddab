import { writeFileSync } from 'node:fs'
import { configJsonSchema } from './json-schema.js'

writeFileSync('config.schema.json', configJsonSchema())
