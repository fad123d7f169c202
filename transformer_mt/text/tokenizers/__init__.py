"""One interface (`base`) and one file for each kind of tokenizer; `config.choices` lists the kinds."""
