"""One interface (`base`) and the kinds of corpora; `config.choices` lists the kinds."""
