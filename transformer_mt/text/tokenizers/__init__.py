"""One interface (`base`), one file a kind. Which kinds there are, `config.choices` says."""
